# In a guest: does what the machine says (Session in guest.py), a line of base64 for each command.
exec 3<>"/dev/tcp/$1/$2" || exit 1
while read -r line <&3; do
    base64 -d <<<"$line" >/run/command
    bash /run/command </dev/null >/run/said 2>&1 3>&-
    status=$?
    size=$(stat -c %s /run/said)
    { echo "$status $size" && head -c "$size" /run/said; } >&3
done

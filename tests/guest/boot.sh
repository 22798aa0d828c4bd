# In a guest: it boots, is its own kernel, can write where it likes, reaches the machine, and has disks.
set -e
[ "$1 $2" = "two words" ]
echo "kernel $(uname -r)"
echo mine >/etc/orlop-guest-was-here
cmp /out/given <(head -c 1048576 /dev/ubda)
echo written | dd of=/dev/ubda conv=notrunc status=none
modprobe dm-mod && [ -e /dev/mapper/control ] || [ -e /sys/class/misc/device-mapper ]
exec 3<>/dev/tcp/10.80.0.254/"$3"
read -r line <&3
echo "the machine says: $line"
echo back >/out/back
exit 7

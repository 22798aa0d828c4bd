"""A saved run as a picture (SVG): a bar for the ratio of each row, and a line where its aim is."""
import html

ROW, LEFT, WIDTH, RIGHT, TOP_SPACE = 20, 400, 460, 90, 56
COLORS = {"reached": "#2e7d32", "missed": "#c62828"}


def text(x, y, words, more=""):
    return f'<text x="{x}" y="{y}" {more}>{html.escape(words)}</text>'


def draw_row(y, row, scale):
    """A name, a bar, the ratio, and the aim."""
    length = max(row["ratio"] * scale, 1)
    parts = [text(LEFT - 8, y + 14, row["name"], 'text-anchor="end"'),
             f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{ROW - 6}" fill="{COLORS[row["verdict"]]}"/>',
             text(f"{LEFT + length + 5:.1f}", y + 14, f"{row['ratio']:.2f}")]
    aim = LEFT + float(row["aim"].split()[1]) * scale
    return parts + [f'<line x1="{aim:.1f}" x2="{aim:.1f}" y1="{y}" y2="{y + ROW}" stroke="#000" stroke-width="2"/>']


def draw(result):
    """The picture of all rows that have a ratio and an aim; "" when there is none."""
    rows = [r for r in result["rows"] if r["ratio"] is not None and r["aim"]]
    if not rows:
        return ""
    most = max([1.0] + [r["ratio"] for r in rows] + [float(r["aim"].split()[1]) for r in rows])
    scale, height = WIDTH / most, TOP_SPACE + ROW * len(rows) + 12
    width, one = LEFT + WIDTH + RIGHT, LEFT + WIDTH / most
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
             f'<rect width="{width}" height="{height}" fill="#fff"/>',
             text(12, 20, result["title"], 'font-size="14" font-weight="bold"'),
             text(12, 38, f"ratio to {result['peer'] or 'the peer'}, {result['rounds']}, {result['date'][:10]}; black lines: "
                          "aims; green: reached; red: missed"),
             f'<line x1="{one:.1f}" x2="{one:.1f}" y1="{TOP_SPACE - 4}" y2="{height - 8}" stroke="#9e9e9e" '
             'stroke-dasharray="3 3"/>',
             text(f"{one:.1f}", TOP_SPACE - 6, "1.0", 'text-anchor="middle" fill="#616161"')]
    for number, row in enumerate(rows):
        parts += draw_row(TOP_SPACE + number * ROW, row, scale)
    return "\n".join([*parts, "</svg>"]) + "\n"

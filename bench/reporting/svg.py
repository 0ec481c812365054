# SPDX-License-Identifier: MIT
"""Charts as inline SVG: bars, lines and points, drawn with the classes of the page's style."""
import html
import math

WIDTH = 860
LABEL = 270  # room for the names left of bars
ROW = 26
AXIS = 34
VALUE = 108  # room for the number behind the longest bar


def escape(text):
    return html.escape(str(text), quote=True)


def short(value):
    """A number as a person reads it."""
    if value is None:
        return "-"
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if suffix == 'k' else limit):.3g}{suffix}"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def steps(top, count=5):
    """Round numbers from 0 to top."""
    if top <= 0:
        return [0, 1]
    rough = top / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return [step * i for i in range(int(math.ceil(top / step - 1e-9)) + 1)]


def frame(height, title, body):
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(body)}</svg>"
    )


def text(x, y, content, css="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}">{escape(content)}</text>'


def line(x1, y1, x2, y2, css):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{css}"/>'


class Bar:
    def __init__(self, label, value, css, low=None, high=None, note=""):
        self.label, self.value, self.css = label, value, css
        self.low, self.high, self.note = low, high, note


def bars(title, rows, unit="", limit=None):
    """One bar a row; low and high of the rounds as a whisker."""
    top = max([row.high or row.value for row in rows] + ([limit] if limit else []))
    marks = steps(top)
    scale = (WIDTH - LABEL - VALUE) / marks[-1]
    height = len(rows) * ROW + AXIS
    body = []
    for mark in marks:
        x = LABEL + mark * scale
        body.append(line(x, 4, x, height - AXIS + 6, "grid"))
        body.append(text(x, height - AXIS + 22, short(mark), "tick", "middle"))
    for i, row in enumerate(rows):
        y = i * ROW + 5
        width = max(row.value * scale, 1)
        body.append(text(LABEL - 8, y + 14, row.label, "name", "end"))
        body.append(
            f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{ROW - 9}" class="{row.css}"/>'
        )
        end = width
        if row.low is not None and row.high is not None and row.high > row.low:
            middle = y + (ROW - 9) / 2
            body.append(line(LABEL + row.low * scale, middle, LABEL + row.high * scale, middle, "range"))
            end = max(width, row.high * scale)
        label = f"{short(row.value)} {unit}".strip() + (f" {row.note}" if row.note else "")
        body.append(text(LABEL + end + 6, y + 13, label, "value"))
    if limit:
        body.append(line(LABEL + limit * scale, 0, LABEL + limit * scale, height - AXIS + 6, "limit"))
    return frame(height, title, body)


def lines(title, series, x_name, y_name):
    """series: (label, css, [(x, y), ...]); the label stands at the line's end."""
    left, right, top, bottom, height = 70, 190, 30, 44, 340
    xs = [x for _, _, points in series for x, _ in points]
    x_marks, y_marks = steps(max(xs)), steps(max(y for _, _, points in series for _, y in points))
    x_scale = (WIDTH - left - right) / x_marks[-1]
    y_scale = (height - top - bottom) / y_marks[-1]
    base = height - bottom
    body = []
    for mark in y_marks:
        body.append(line(left, base - mark * y_scale, WIDTH - right, base - mark * y_scale, "grid"))
        body.append(text(left - 8, base - mark * y_scale + 4, short(mark), "tick", "end"))
    for mark in x_marks:
        body.append(text(left + mark * x_scale, base + 18, short(mark), "tick", "middle"))
    body.append(text((left + WIDTH - right) / 2, height - 6, x_name, "tick", "middle"))
    body.append(text(left - 8, 12, y_name, "tick"))
    ends = []
    for label, css, points in series:
        path = " ".join(f"{left + x * x_scale:.1f},{base - y * y_scale:.1f}" for x, y in points)
        body.append(f'<polyline points="{path}" class="curve {css}"/>')
        ends.append([base - points[-1][1] * y_scale, left + points[-1][0] * x_scale, label, css])
    ends.sort()
    for i, end in enumerate(ends):
        y = max(end[0], ends[i - 1][0] + 16) if i > 0 else end[0]
        end[0] = y
        body.append(text(end[1] + 8, y + 4, end[2], f"end {end[3]}"))
    return frame(height, title, body)


def points(title, rows, unit):
    """rows: (label, [(name, value), ...]) on a logarithmic axis."""
    values = [value for _, items in rows for _, value in items if value and value > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    high = max(high, low + 1)
    scale = (WIDTH - LABEL - 40) / (high - low)
    row_height = ROW + 14
    height = len(rows) * row_height + AXIS
    body = []
    for power in range(low, high + 1):
        x = LABEL + (power - low) * scale
        body.append(line(x, 4, x, height - AXIS + 6, "grid"))
        body.append(text(x, height - AXIS + 22, f"{short(10.0 ** power)} {unit}", "tick", "middle"))
    for i, (label, items) in enumerate(rows):
        y = i * row_height + 24
        body.append(text(LABEL - 8, y + 4, label, "name", "end"))
        places = [(LABEL + (math.log10(value) - low) * scale, name) for name, value in items if value]
        body.append(line(places[0][0], y, places[-1][0], y, "range"))
        above = below = -1e9  # where the last name above and below the line ends
        for x, name in places:
            body.append(f'<circle cx="{x:.1f}" cy="{y}" r="4.5" class="shared"/>')
            if x - above >= 34:
                body.append(text(x, y - 9, name, "tick", "middle"))
                above = x
            elif x - below >= 34:
                body.append(text(x, y + 18, name, "tick", "middle"))
                below = x
    return frame(height, title, body)

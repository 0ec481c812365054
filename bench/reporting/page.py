# SPDX-License-Identifier: MIT
"""The report: which chart and table is made of which results."""
from . import svg
from .results import median

STYLE = """
:root { --ink: #1c1c1e; --soft: #5d6066; --line: #d9dbe0; --shared: #1f6f54; --copying: #c07a2c;
  --reference: #8b8fa3; --peer: #4a6fa5; --extra: #8d4a78; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem; color: var(--ink); background: #fff;
  font: 16px/1.5 "DejaVu Sans", "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .3rem; border-top: 1px solid var(--line); padding-top: 1.1rem; }
p { margin: .3rem 0 .8rem; color: var(--soft); max-width: 48rem; }
section { break-inside: avoid-page; }
svg { width: 100%; height: auto; display: block; }
svg text { font-size: 12.5px; fill: var(--ink); }
svg .tick { fill: var(--soft); font-size: 11.5px; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .range { stroke: var(--ink); stroke-width: 1.4; }
svg .limit { stroke: var(--ink); stroke-width: 1.4; stroke-dasharray: 5 4; }
svg .shared { fill: var(--shared); } svg .copying { fill: var(--copying); }
svg .reference { fill: var(--reference); } svg .peer { fill: var(--peer); }
svg .curve { fill: none; stroke-width: 2.2; }
svg .curve.shared { stroke: var(--shared); } svg .curve.copying { stroke: var(--copying); }
svg .curve.peer { stroke: var(--peer); } svg .curve.reference { stroke: var(--reference);
  stroke-dasharray: 6 4; } svg .curve.extra { stroke: var(--extra); }
svg .end { font-size: 12px; } svg .end.extra { fill: var(--extra); }
.key span { display: inline-block; margin-right: 1.3rem; font-size: .88rem; }
.key i { display: inline-block; width: .9em; height: .9em; margin-right: .4em; vertical-align: -.08em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .84rem; margin: .8rem 0 0;
  font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .5rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; } h2 { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } .scroll { overflow: visible; }
  table { font-size: 8pt; } }
"""


def table(header, rows):
    head = "".join(f"<th>{svg.escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{svg.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title, words, *parts):
    return f"<section><h2>{svg.escape(title)}</h2><p>{svg.escape(words)}</p>{''.join(parts)}</section>"


def key(*names):
    words = {
        "shared": "Sluice",
        "copying": "Sluice, copying as the reference did",
        "reference": "reference, as it reported on its own machine",
        "peer": "foreign peers, same session",
    }
    marks = "".join(
        f'<span><i style="background:var(--{name})"></i>{words[name]}</span>' for name in names
    )
    return f'<div class="key">{marks}</div>'


def middle(columns, column):
    return median(columns.get(column, []))


def kind_of(scenario):
    return "copying" if "copying" in scenario else "shared"


def family_of(scenario):
    return scenario.split("_")[0]


def number(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def reference_rows(results, scenario):
    return [row for row in results.reference if row["scenario"] == scenario]


def peer_bars(results):
    rows = []
    for stack, runs in sorted(results.peers.items()):
        values = [run["recvMsgPerSec"] for run in runs if run.get("recvMsgPerSec")]
        if values:
            rows.append(svg.Bar(f"js {stack}", median(values), "peer", min(values), max(values)))
    return rows


def throughput(results):
    parts = []
    for family, words in (
        ("macro", "Two nodes over loopback TCP with Noise and yamux, 32 messages in flight"),
        ("micro", "The pipeline in one process, no network"),
        ("ingress", "The pipeline entered with relay frames; x6: every message arrives six times"),
    ):
        mine = {name: row for name, row in results.paths.items() if family_of(name) == family}
        if not mine:
            continue
        rows = [
            svg.Bar(name, middle(row, "msg_per_s"), kind_of(name), min(row["msg_per_s"]), max(row["msg_per_s"]))
            for name, row in mine.items()
        ]
        rows += peer_bars(results) if family == "macro" else []
        rows += [
            svg.Bar(f"reference, {row['state']} ({row['machine']})", row["msg_per_s"], "reference")
            for row in reference_rows(results, family)
        ]
        parts.append(f"<p><strong>{svg.escape(words)}</strong></p>")
        parts.append(svg.bars(f"Messages per second, {family}", rows, "msg/s"))
    if not parts:
        return ""
    names = ["shared", "copying"]
    names += ["reference"] if results.reference else []
    names += ["peer"] if results.peers else []
    words = (
        "Messages of 10, 50 and 150 kB at 25, 50 and 25 %. The bar is the median of the rounds, the line "
        "on it reaches from the slowest to the fastest."
    )
    return section("Throughput", words, key(*names), *parts)


def work(results):
    columns = ("decodes_per_msg", "hashes_per_msg", "id_hashes_per_msg", "copies_per_msg")
    rows = []
    for name, row in results.paths.items():
        rows.append([name] + [number(middle(row, column), 3) for column in columns]
                    + [number(middle(row, column)) for column in ("copied_MB", "hashed_MB", "decoded_MB")])
    for row in results.reference:
        rows.append([f"reference {row['scenario']}, {row['state']}", number(row["decodes_per_msg"], 3),
                     number(row["hashes_per_msg"], 3), "-", "-", "-", number(row.get("hashed_MB") or None),
                     number(row.get("decoded_MB") or None)])
    if not results.paths:
        return ""
    charts = []
    for column, words in (("decodes_per_msg", "Decodes"), ("hashes_per_msg", "Message hashes")):
        items = [svg.Bar(name, middle(row, column), kind_of(name)) for name, row in results.paths.items()
                 if middle(row, column) is not None and name.endswith("memory_w32")]
        items += [svg.Bar(f"reference {row['scenario']}, {row['state']}", row[column], "reference")
                  for row in results.reference]
        if items:
            charts.append(f"<p><strong>{words} per message</strong></p>")
            charts.append(svg.bars(f"{words} per message", items))
    header = ["scenario", "decodes", "message hashes", "id hashes", "copies", "copied MB", "hashed MB", "decoded MB"]
    words = ("Counted inside the decoder, the hashes and the copies themselves, per message, of all threads "
             "of the process.")
    return section("Work per message", words, *charts, table(header, rows))


def latency(results):
    rows, cells = [], []
    for name, item in results.floods:
        values = item.get("latency_us")
        if values and values.get("p50"):
            rows.append((name, [(key_, values[key_]) for key_ in ("p50", "p99", "p99.9", "max") if values.get(key_)]))
            cells.append([f"flood {name}"] + [number(values.get(key_), 0) for key_ in ("p50", "p99", "p99.9", "max")])
    for name, row in results.paths.items():
        p50, p99 = middle(row, "ns_per_msg_p50"), middle(row, "ns_per_msg_p99")
        if p50 and p99 and name.endswith("_w32"):
            rows.append((name, [("p50", p50 / 1e3), ("p99", p99 / 1e3)]))
            cells.append([name, number(p50 / 1e3), number(p99 / 1e3, 0), "-", "-"])
    if not rows:
        return ""
    words = ("Microseconds, logarithmic. flood: from the moment a message was due to its arrival at a receiver. "
             "micro and ingress: from entry until every stage is done with it, 32 in flight. macro: from "
             "one message's arrival to the next, as the reference measures it.")
    return section("Latency", words, svg.points("Latency", rows, "µs"),
                   table(["", "p50 µs", "p99 µs", "p99.9 µs", "max µs"], cells))


def memory(results):
    parts = []
    for name, rows in results.heaps:
        series = [
            ("resident (kernel)", "extra", [(row["message"], row["rss_bytes"] / 1e6) for row in rows]),
            ("allocated", "shared", [(row["message"], row["allocated_bytes"] / 1e6) for row in rows]),
            ("serialised so far", "reference", [(row["message"], row["serialised_bytes"] / 1e6) for row in rows]),
        ]
        parts.append(f"<p><strong>{svg.escape(name)}</strong></p>")
        parts.append(svg.lines(f"Memory over time, {name}", series, "messages", "MB"))
    words = ("The memory archive keeps every message, so the heap grows with what was serialised; what "
             "stands above that line is the router's own.")
    return section("Memory over time", words, *parts) if parts else ""


def share(results):
    rows = [
        svg.Bar(name, middle(row, "share_of_limit"), kind_of(name), min(row["share_of_limit"]), max(row["share_of_limit"]))
        for name, row in results.paths.items() if middle(row, "share_of_limit") is not None
    ]
    cells = [[name, number(middle(row, "msg_per_s"), 0), number(middle(row, "limit_msg_per_s"), 0),
              number(middle(row, "share_of_limit"), 3)] for name, row in results.paths.items()]
    if not rows:
        return ""
    words = ("The limit is measured in the same run: micro and ingress, the slowest single step done alone; "
             "macro, the sum of what must be done for each message on the cores that were used. The dashed "
             "line is the limit.")
    return section("Share of the limit", words, svg.bars("Share of the limit", rows, limit=1.0),
                   table(["scenario", "msg/s", "limit msg/s", "share"], cells))


def load(results):
    rows = []
    for name, item in results.floods:
        if "latency_us" not in item:
            rows.append([name, number(item.get("frames"), 0), number(item["frames_per_second"], 0), "-",
                         number(item.get("mb_per_second")), "-", "-", "-", "-"])
            continue
        node = (item.get("nodes") or [{}])[0]
        rows.append([name, number(item["published"], 0), number(item["published_per_second"], 0),
                     number(item["delivered_per_second"], 0), number(item["mb_per_second"]), number(item["lost"], 0),
                     number(item["doubled"], 0), number(node.get("cpu_us_per_message")), number(node.get("peak_rss_mb"))])
    header = ["run", "published", "published/s", "delivered/s", "MB/s", "lost", "doubled", "node CPU µs/msg", "node peak MB"]
    return section("Load over the network", "What flood sent and got back.", table(header, rows)) if rows else ""


def fanout(results):
    if not results.fanouts:
        return ""
    stars = sorted((row for row in results.fanouts if row["shape"] == "star"), key=lambda row: row["receivers"])
    parts = []
    for column, name in (("deliveries_per_second", "deliveries/s"), ("cpu_us_per_delivery", "CPU µs a delivery")):
        curves = []
        for css, size in zip(("shared", "copying", "peer"), sorted({row["payload_bytes"] for row in stars})):
            rows = [row for row in stars if row["payload_bytes"] == size]
            if len(rows) > 1:
                curves.append((f"{svg.short(size)} bytes", css, [(row["receivers"], row[column]) for row in rows]))
        if curves:
            parts.append(svg.lines(f"Fan-out, {name}", curves, "receivers", name))
    rows = [[f"{row['shape']}, {row['receivers']:.0f}", row["payload_bytes"], number(row["messages_per_second"], 0),
             number(row["deliveries_per_second"], 0), number(row["mb_per_second"]), number(row["cpu_us_per_delivery"], 2),
             number(row["sha256_per_delivery"], 3)] for row in results.fanouts]
    header = ["shape", "payload bytes", "messages/s", "deliveries/s", "MB/s", "CPU µs/delivery", "SHA-256/delivery"]
    return section("Fan-out", "One publisher, one router, many receivers; and a full mesh in which every message "
                   "arrives several times.", *parts, table(header, rows))


def parts_of_the_machine(results):
    parts = []
    for _, item in results.rings:
        rows = [[row["queue"], row["consumers"], row["measure"], number(row["ns"]), number(row["ns_min"]), number(row["ns_max"])]
                for row in item["rows"]]
        parts.append(table(["queue", "consumers", "measure", "ns", "min", "max"], rows))
    groups = {}
    for row in results.lines:
        groups.setdefault(row["bench"], []).append(row)
    for name, rows in sorted(groups.items()):
        columns = [column for column in rows[0] if column != "bench"]
        parts.append(table([name] + columns, [[""] + [row.get(column, "-") for column in columns] for row in rows]))
    return section("Queues, archive and streams alone", "The parts by themselves.", *parts) if parts else ""


def render(results, title, machine):
    sections = (throughput, work, latency, memory, share, load, fanout, parts_of_the_machine)
    body = "".join(make(results) for make in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{svg.escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{svg.escape(title)}</h1><p>{svg.escape(machine)}</p>{body}</body></html>\n"
    )

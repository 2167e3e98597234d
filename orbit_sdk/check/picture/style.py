"""How a picture looks, in light and in dark surroundings; everything stays inside its own class."""

from __future__ import annotations

from typing import Final

MONO: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS: Final = "system-ui,-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif"

_LIGHT: Final = {
    "paper": "#ffffff",
    "card": "#ffffff",
    "frame": "#f6f8fb",
    "border": "#c4ccd8",
    "ink": "#1b2430",
    "soft": "#586475",
    "wire": "#8592a5",
    "task": "#2563eb",
    "wait": "#9333ea",
    "poll": "#0e7490",
    "timer": "#64748b",
    "branch": "#4d6b17",
    "arm": "#475569",
    "good": "#15803d",
    "bad": "#c81e1e",
    "late": "#b45309",
    "good-tint": "#e8f7ed",
    "bad-tint": "#fdeaea",
    "run-tint": "#e6effe",
    "ask-tint": "#fff3dc",
}
_DARK: Final = {
    "paper": "#12171f",
    "card": "#1b222d",
    "frame": "#171d27",
    "border": "#3a4657",
    "ink": "#e8edf4",
    "soft": "#a3b0c2",
    "wire": "#7c8aa0",
    "task": "#7aa8ff",
    "wait": "#cf9bff",
    "poll": "#5cc8de",
    "timer": "#a3b0c2",
    "branch": "#b1d364",
    "arm": "#b6c2d2",
    "good": "#5fd38a",
    "bad": "#ff8a8a",
    "late": "#f5b95f",
    "good-tint": "#16301f",
    "bad-tint": "#3a1c1f",
    "run-tint": "#18294a",
    "ask-tint": "#3a2c12",
}

_RULES: Final = (
    "text{{font-family:{sans};fill:var(--ink)}}",
    ".paper{{fill:var(--paper)}}",
    ".frame{{fill:var(--frame);stroke:var(--border);stroke-dasharray:2 3}}",
    ".frame-name{{font-size:11px;fill:var(--soft)}}",
    ".box{{fill:var(--card);stroke:var(--border);stroke-width:1.2}}",
    ".key{{font:600 13px {mono}}}",
    ".detail{{font:11px {mono};fill:var(--soft)}}",
    ".kind{{font-size:9.5px;font-weight:700;letter-spacing:.06em;fill:var(--tone)}}",
    ".stripe{{fill:var(--tone)}}",
    ".line{{fill:none;stroke:var(--way);stroke-width:1.6}}",
    ".head{{fill:var(--way)}}",
    ".label{{font-size:11px;fill:var(--way-ink)}}",
    ".state{{font-size:9px;font-weight:700;fill:var(--state)}}",
)
_TONES: Final = {
    "task": "task",
    "wait": "wait",
    "poll": "poll",
    "timer": "timer",
    "branch": "branch",
    "merge": "branch",
    "parallel": "arm",
    "join": "arm",
    "end": "good",
    "fail": "bad",
}
_WAYS: Final = {
    "next": ("wire", "soft", ""),
    "case": ("branch", "branch", ""),
    "arm": ("arm", "arm", "stroke-width:2.4"),
    "catch": ("bad", "bad", "stroke-dasharray:6 4"),
    "late": ("late", "late", "stroke-dasharray:1.5 4;stroke-linecap:round;stroke-width:2"),
}
_STATES: Final = {
    "good": ("good", "good-tint"),
    "bad": ("bad", "bad-tint"),
    "run": ("task", "run-tint"),
    "ask": ("late", "ask-tint"),
}


def style_sheet(name: str) -> str:
    """The style sheet of pictures of the class `name`."""
    lines = [f".{name}{{{_variables(_LIGHT)}}}"]
    lines.append(f"@media(prefers-color-scheme:dark){{.{name}{{{_variables(_DARK)}}}}}")
    lines += [f".{name} {rule.format(mono=MONO, sans=SANS)}" for rule in _RULES]
    lines += [f".{name} .tone-{tone}{{--tone:var(--{colour})}}" for tone, colour in _TONES.items()]
    for way, (colour, ink, more) in _WAYS.items():
        lines.append(f".{name} .way-{way}{{--way:var(--{colour});--way-ink:var(--{ink})}}")
        if more:
            lines.append(f".{name} .line.way-{way}{{{more}}}")
    for state, (colour, tint) in _STATES.items():
        lines.append(f".{name} .is-{state}{{--state:var(--{colour})}}")
        lines.append(f".{name} .is-{state} .box{{fill:var(--{tint});stroke:var(--{colour});stroke-width:2}}")
    lines.append(f".{name} .is-unreached{{opacity:.45}}")
    return "\n".join(lines)


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())

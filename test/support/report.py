"""Figures of a measuring test, for machines to compare: build/reports/NAME.json, flat, units in the keys."""

import json
from pathlib import Path

REPORTS = Path(__file__).parents[2] / "build" / "reports"


def write_report(name: str, **figures: float | str) -> Path:
    """Replace one report."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    path = REPORTS / f"{name}.json"
    path.write_text(json.dumps(figures, indent=2) + "\n")
    return path

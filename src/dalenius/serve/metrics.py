"""What the service counts, in Prometheus's text format; nothing of a question or an answer."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the classes of times, in seconds."""


@dataclass(slots=True, kw_only=True)
class Metrics:
    """Counts since the start."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By release and outcome."""
    questions: Counter[tuple[str, str]] = field(default_factory=Counter)
    classes: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, release: str, outcome: str, questions: int, seconds: float) -> None:
        """A request that was answered or refused."""
        self.requests[release, outcome] += 1
        self.questions[release, outcome] += questions
        self.classes[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def render(self, gauges: dict[str, int]) -> str:
        """As Prometheus reads it.

        >>> print(Metrics().render({"dalenius_workers_busy": 1}).splitlines()[-1])
        dalenius_workers_busy 1
        """
        lines = [
            *_counter("dalenius_requests_total", "Requests by release and outcome.", self.requests),
            *_counter("dalenius_questions_total", "Questions by release and outcome.", self.questions),
            *self._times(),
        ]
        for name, value in gauges.items():
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# TYPE {name} {kind}", f"{name} {value}"]
        return "\n".join(lines) + "\n"

    def _times(self) -> Iterator[str]:
        name = "dalenius_request_seconds"
        yield f"# HELP {name} How long requests took, waiting included."
        yield f"# TYPE {name} histogram"
        below = 0
        for number, bound in enumerate(BOUNDS):
            below += self.classes[number]
            yield f'{name}_bucket{{le="{bound:g}"}} {below}'
        total = self.classes.total()
        yield f'{name}_bucket{{le="+Inf"}} {total}'
        yield f"{name}_sum {self.seconds:.6f}"
        yield f"{name}_count {total}"


def _counter(name: str, meaning: str, counts: Counter[tuple[str, str]]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} counter"
    for (release, outcome), n in sorted(counts.items()):
        label = release.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        yield f'{name}{{release="{label}",outcome="{outcome}"}} {n}'

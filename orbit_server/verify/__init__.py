"""What must be impossible, looked for in a real database: ten rules, each a few queries over stored rows.

    with snapshot(url) as conn:
        found = violations(conn)

Nothing here writes or locks. The queries read one consistent snapshot, so they may run beside servers.
"""

from orbit_server.verify.finding import Finding
from orbit_server.verify.rules import RULES, Rule, violations
from orbit_server.verify.snapshot import snapshot

__all__ = ["RULES", "Finding", "Rule", "snapshot", "violations"]

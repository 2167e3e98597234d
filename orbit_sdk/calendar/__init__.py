"""Cron, zones and fixed rate: when a plan is due, as pure functions.

`parse_cron` and `load_zone` read what people write; `CronPlan` and `RatePlan` give every planned instant;
`judge` says what becomes of those that were missed.
"""

from orbit_sdk.calendar.cron import Cron, parse_cron
from orbit_sdk.calendar.misfire import Cut, Judgement, Misfire, MisfirePolicy, Reason, Run, judge
from orbit_sdk.calendar.plans import CronPlan, Gap, Plan, RatePlan, Repeat, cron_plan, next_fire, next_fires
from orbit_sdk.calendar.zones import Zone, load_zone, tzdata_version

__all__ = [
    "Cron",
    "CronPlan",
    "Cut",
    "Gap",
    "Judgement",
    "Misfire",
    "MisfirePolicy",
    "Plan",
    "RatePlan",
    "Reason",
    "Repeat",
    "Run",
    "Zone",
    "cron_plan",
    "judge",
    "load_zone",
    "next_fire",
    "next_fires",
    "parse_cron",
    "tzdata_version",
]

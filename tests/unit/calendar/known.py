"""Plans with the answers they must give, from faults that schedulers are known for."""

from __future__ import annotations

from typing import Final

ALL: Final = ("SKIP FIRST", "SKIP BOTH", "NEXT_VALID FIRST", "NEXT_VALID BOTH")

# What it shows, expression, zone, asked after, and per pair of policies the next instants.
NEXT: Final[tuple[tuple[str, str, str, str, dict[str, str]], ...]] = (
    (
        "a daily midnight stays at midnight after the clock went forward",
        "0 0 * * *",
        "Europe/Warsaw",
        "2017-03-25T23:00:00Z",
        {
            "*": ("2017-03-26T22:00Z 2017-03-27T22:00Z 2017-03-28T22:00Z"),
        },
    ),
    (
        "an hourly job neither loses nor repeats an hour in spring",
        "0 * * * *",
        "Europe/Warsaw",
        "2017-03-25T23:30:00Z",
        {
            "*": (
                "2017-03-26T00:00Z 2017-03-26T01:00Z 2017-03-26T02:00Z 2017-03-26T03:00Z 2017-03-26T04:00Z"
            ),
        },
    ),
    (
        "a minute in the gap is found by policy however close to the change one asks",
        "1 2 * * *",
        "Europe/Berlin",
        "2020-03-29T00:59:55Z",
        {
            "SKIP FIRST | SKIP BOTH": ("2020-03-30T00:01Z 2020-03-31T00:01Z 2020-04-01T00:01Z"),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": ("2020-03-29T01:00Z 2020-03-30T00:01Z 2020-03-31T00:01Z"),
        },
    ),
    (
        "an hourly half past goes on after the clock went back",
        "30 * * * *",
        "Europe/Vienna",
        "2017-10-28T22:05:00Z",
        {
            "SKIP FIRST | NEXT_VALID FIRST": (
                "2017-10-28T22:30Z 2017-10-28T23:30Z 2017-10-29T00:30Z 2017-10-29T02:30Z "
                "2017-10-29T03:30Z 2017-10-29T04:30Z"
            ),
            "SKIP BOTH | NEXT_VALID BOTH": (
                "2017-10-28T22:30Z 2017-10-28T23:30Z 2017-10-29T00:30Z 2017-10-29T01:30Z "
                "2017-10-29T02:30Z 2017-10-29T03:30Z"
            ),
        },
    ),
    (
        "an evening job keeps its local time on the day after the change",
        "0 20 * * *",
        "Europe/Paris",
        "2022-10-29T22:00:00Z",
        {
            "*": ("2022-10-30T19:00Z 2022-10-31T19:00Z 2022-11-01T19:00Z"),
        },
    ),
    (
        "a daily job at a repeated hour runs once or twice by policy",
        "0 2 * * *",
        "Europe/Berlin",
        "2023-10-28T12:00:00Z",
        {
            "SKIP FIRST | NEXT_VALID FIRST": ("2023-10-29T00:00Z 2023-10-30T01:00Z 2023-10-31T01:00Z"),
            "SKIP BOTH | NEXT_VALID BOTH": ("2023-10-29T00:00Z 2023-10-29T01:00Z 2023-10-30T01:00Z"),
        },
    ),
    (
        "the next run after a gap is tomorrow, not next year",
        "30 2 * * *",
        "America/New_York",
        "2026-03-08T06:30:00Z",
        {
            "SKIP FIRST | SKIP BOTH": ("2026-03-09T06:30Z 2026-03-10T06:30Z"),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": ("2026-03-08T07:00Z 2026-03-09T06:30Z"),
        },
    ),
    (
        "a yearly job whose only minute is in the gap comes by policy",
        "0 1 30 3 *",
        "Europe/Lisbon",
        "2024-11-15T00:00:00Z",
        {
            "SKIP FIRST | SKIP BOTH": ("2026-03-30T00:00Z 2027-03-30T00:00Z 2028-03-30T00:00Z"),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": ("2025-03-30T01:00Z 2026-03-30T00:00Z 2027-03-30T00:00Z"),
        },
    ),
    (
        "a weekly midnight on a day without midnight",
        "0 0 * * 0",
        "America/Sao_Paulo",
        "2018-10-28T12:00:00Z",
        {
            "SKIP FIRST | SKIP BOTH": ("2018-11-11T02:00Z 2018-11-18T02:00Z 2018-11-25T02:00Z"),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": ("2018-11-04T03:00Z 2018-11-11T02:00Z 2018-11-18T02:00Z"),
        },
    ),
    (
        "a daily midnight on a day without midnight, Cairo",
        "0 0 * * *",
        "Africa/Cairo",
        "2024-04-24T22:00:00Z",
        {
            "SKIP FIRST | SKIP BOTH": ("2024-04-26T21:00Z 2024-04-27T21:00Z 2024-04-28T21:00Z"),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": ("2024-04-25T22:00Z 2024-04-26T21:00Z 2024-04-27T21:00Z"),
        },
    ),
    (
        "a daily midnight on a Sunday without midnight, Santiago",
        "0 0 * * *",
        "America/Santiago",
        "2022-09-09T12:00:00Z",
        {
            "SKIP FIRST | SKIP BOTH": (
                "2022-09-10T04:00Z 2022-09-12T03:00Z 2022-09-13T03:00Z 2022-09-14T03:00Z"
            ),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": (
                "2022-09-10T04:00Z 2022-09-11T04:00Z 2022-09-12T03:00Z 2022-09-13T03:00Z"
            ),
        },
    ),
    (
        "asked before the change, the day after it is not left out",
        "0 0 * * *",
        "Europe/Prague",
        "2026-03-28T23:30:00Z",
        {
            "*": ("2026-03-29T22:00Z 2026-03-30T22:00Z"),
        },
    ),
    (
        "a weekly noon survives a day of 23 hours",
        "0 12 * * 0",
        "Europe/Berlin",
        "2022-03-24T11:00:00Z",
        {
            "*": ("2022-03-27T10:00Z 2022-04-03T10:00Z"),
        },
    ),
    (
        "every minute of every third weekday starts on the right minute",
        "* * * */3 *",
        "America/New_York",
        "2015-02-15T05:00:00Z",
        {
            "*": ("2015-04-01T04:00Z 2015-04-01T04:01Z"),
        },
    ),
    (
        "an afternoon job runs once on the day before the change",
        "0 17 * * *",
        "America/New_York",
        "2015-10-31T21:00:00Z",
        {
            "*": ("2015-11-01T22:00Z 2015-11-02T22:00Z 2015-11-03T22:00Z"),
        },
    ),
    (
        "two morning hours keep their local times on the day of the change",
        "0 7,9 * * *",
        "America/Los_Angeles",
        "2020-03-07T15:00:00Z",
        {
            "*": (
                "2020-03-07T17:00Z 2020-03-08T14:00Z 2020-03-08T16:00Z 2020-03-09T14:00Z 2020-03-09T16:00Z"
            ),
        },
    ),
    (
        "a range of hours after the gap is ordinary",
        "0 7-8 * * *",
        "America/Los_Angeles",
        "2020-03-07T16:00:00Z",
        {
            "*": ("2020-03-08T14:00Z 2020-03-08T15:00Z 2020-03-09T14:00Z 2020-03-09T15:00Z"),
        },
    ),
    (
        "every fourth hour over a gap never runs backwards",
        "20 */4 * * *",
        "America/Los_Angeles",
        "2023-03-12T08:00:00Z",
        {
            "*": (
                "2023-03-12T08:20Z 2023-03-12T11:20Z 2023-03-12T15:20Z 2023-03-12T19:20Z "
                "2023-03-12T23:20Z 2023-03-13T03:20Z"
            ),
        },
    ),
    (
        "asked at the end of the gap, the answer is later than the question",
        "0 2 * * *",
        "America/New_York",
        "2024-03-10T07:00:00Z",
        {
            "*": ("2024-03-11T06:00Z 2024-03-12T06:00Z"),
        },
    ),
    (
        "a repeated hour asked about between its passes",
        "0 1 * * *",
        "America/New_York",
        "2024-11-03T05:30:00Z",
        {
            "SKIP FIRST | NEXT_VALID FIRST": ("2024-11-04T06:00Z 2024-11-05T06:00Z"),
            "SKIP BOTH | NEXT_VALID BOTH": ("2024-11-03T06:00Z 2024-11-04T06:00Z"),
        },
    ),
    (
        "the minute just after a half-hour gap is ordinary",
        "30 2 * * *",
        "Australia/Lord_Howe",
        "2026-10-02T20:00:00Z",
        {
            "*": ("2026-10-03T15:30Z 2026-10-04T15:30Z 2026-10-05T15:30Z"),
        },
    ),
    (
        "a daily job over a day that a country left out",
        "0 0 * * *",
        "Pacific/Apia",
        "2011-12-29T09:00:00Z",
        {
            "*": ("2011-12-29T10:00Z 2011-12-30T10:00Z 2011-12-31T10:00Z 2012-01-01T10:00Z"),
        },
    ),
    (
        "several times in one two-hour gap are one run",
        "0,30 1-2 * * *",
        "Antarctica/Troll",
        "2026-03-28T12:00:00Z",
        {
            "SKIP FIRST | SKIP BOTH": (
                "2026-03-29T23:00Z 2026-03-29T23:30Z 2026-03-30T00:00Z 2026-03-30T00:30Z 2026-03-30T23:00Z"
            ),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": (
                "2026-03-29T01:00Z 2026-03-29T23:00Z 2026-03-29T23:30Z 2026-03-30T00:00Z 2026-03-30T00:30Z"
            ),
        },
    ),
    (
        "midnight behind a one-time change comes once",
        "0 0 1 3 *",
        "Asia/Almaty",
        "2024-02-28T00:00:00Z",
        {
            "*": ("2024-02-29T19:00Z 2025-02-28T19:00Z"),
        },
    ),
    (
        "a zone whose winter time is the exception behaves like its neighbour",
        "30 1 * * *",
        "Europe/Dublin",
        "2026-10-24T12:00:00Z",
        {
            "SKIP FIRST | NEXT_VALID FIRST": ("2026-10-25T00:30Z 2026-10-26T01:30Z 2026-10-27T01:30Z"),
            "SKIP BOTH | NEXT_VALID BOTH": ("2026-10-25T00:30Z 2026-10-25T01:30Z 2026-10-26T01:30Z"),
        },
    ),
    (
        "a permanent change by half an hour",
        "45 2 * * *",
        "America/Caracas",
        "2016-04-30T00:00:00Z",
        {
            "SKIP FIRST | SKIP BOTH": ("2016-04-30T07:15Z 2016-05-02T06:45Z 2016-05-03T06:45Z"),
            "NEXT_VALID FIRST | NEXT_VALID BOTH": ("2016-04-30T07:15Z 2016-05-01T07:00Z 2016-05-02T06:45Z"),
        },
    ),
    (
        "a plan in UTC knows no local change",
        "0 * * * *",
        "UTC",
        "2025-10-05T02:00:00Z",
        {
            "*": ("2025-10-05T03:00Z 2025-10-05T04:00Z"),
        },
    ),
    (
        "an earlier gap does not shift what comes after it",
        "30 2 * * *",
        "Europe/Amsterdam",
        "2025-04-01T00:00:00Z",
        {
            "*": ("2025-04-01T00:30Z 2025-04-02T00:30Z"),
        },
    ),
    (
        "quarter hours over a gap make no double run at its end",
        "*/15 * * * *",
        "Europe/Warsaw",
        "2026-03-29T00:30:00Z",
        {
            "*": (
                "2026-03-29T00:45Z 2026-03-29T01:00Z 2026-03-29T01:15Z 2026-03-29T01:30Z 2026-03-29T01:45Z"
            ),
        },
    ),
    (
        "asked at a planned instant, the next one is given",
        "0 * * * *",
        "UTC",
        "2026-01-01T05:00:00Z",
        {
            "*": ("2026-01-01T06:00Z"),
        },
    ),
    (
        "asked a microsecond after a planned instant",
        "* * * * *",
        "UTC",
        "2026-01-01T00:00:00.000001Z",
        {
            "*": ("2026-01-01T00:01Z"),
        },
    ),
    (
        "29 February from 29 February",
        "0 9 29 2 *",
        "UTC",
        "2016-02-29T09:00:00Z",
        {
            "*": ("2020-02-29T09:00Z 2024-02-29T09:00Z 2028-02-29T09:00Z"),
        },
    ),
    (
        "the 30th leaves February out",
        "0 0 30 1-3 *",
        "UTC",
        "2026-01-30T00:00:00Z",
        {
            "*": ("2026-03-30T00:00Z 2027-01-30T00:00Z"),
        },
    ),
    (
        "a leap day that is a weekday belongs to the weekdays",
        "0 * * * 1-5",
        "UTC",
        "2016-02-29T11:00:00Z",
        {
            "*": ("2016-02-29T12:00Z 2016-02-29T13:00Z"),
        },
    ),
    (
        "29 February or Sundays of February",
        "0 2 29 2 0",
        "UTC",
        "2019-02-01T00:00:00Z",
        {
            "*": (
                "2019-02-03T02:00Z 2019-02-10T02:00Z 2019-02-17T02:00Z 2019-02-24T02:00Z 2020-02-02T02:00Z"
            ),
        },
    ),
    (
        "31 February or Mondays of February is no impossible plan",
        "0 0 31 2 1",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": ("2026-02-02T00:00Z 2026-02-09T00:00Z 2026-02-16T00:00Z 2026-02-23T00:00Z"),
        },
    ),
    (
        "a day field that begins with a star does not widen the other",
        "0 0 */2 * 3",
        "UTC",
        "2024-09-08T00:00:00Z",
        {
            "*": ("2024-09-11T00:00Z 2024-09-25T00:00Z 2024-10-09T00:00Z"),
        },
    ),
    (
        "even days or two weekdays",
        "0 0 2-30/2 * 0,2",
        "UTC",
        "2025-12-18T00:00:00Z",
        {
            "*": ("2025-12-20T00:00Z 2025-12-21T00:00Z 2025-12-22T00:00Z 2025-12-23T00:00Z"),
        },
    ),
    (
        "Sunday is 0",
        "0 0 * * 0",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": ("2026-01-04T00:00Z 2026-01-11T00:00Z"),
        },
    ),
    (
        "Sunday is sun",
        "0 0 * * sun",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": ("2026-01-04T00:00Z 2026-01-11T00:00Z"),
        },
    ),
    (
        "Sunday twice is Sunday once",
        "0 0 * * 0,7",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": ("2026-01-04T00:00Z 2026-01-11T00:00Z"),
        },
    ),
    (
        "a range of weekdays from a name to 7",
        "0 0 * * WED-7",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": (
                "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z 2026-01-07T00:00Z 2026-01-08T00:00Z"
            ),
        },
    ),
    (
        "a range of weekdays that ends on Sunday as 7",
        "0 0 * * 5-7",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": ("2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z 2026-01-09T00:00Z"),
        },
    ),
    (
        "every second weekday counts from Sunday",
        "0 0 * * */2",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": (
                "2026-01-03T00:00Z 2026-01-04T00:00Z 2026-01-06T00:00Z 2026-01-08T00:00Z 2026-01-10T00:00Z"
            ),
        },
    ),
    (
        "every second weekday from Monday to Sunday",
        "0 0 * * 1-7/2",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": (
                "2026-01-02T00:00Z 2026-01-04T00:00Z 2026-01-05T00:00Z 2026-01-07T00:00Z 2026-01-09T00:00Z"
            ),
        },
    ),
    (
        "a stepped range keeps its bounds",
        "10-50/15 * * * *",
        "UTC",
        "2024-07-11T10:07:00Z",
        {
            "*": ("2024-07-11T10:10Z 2024-07-11T10:25Z 2024-07-11T10:40Z 2024-07-11T11:10Z"),
        },
    ),
    (
        "a stepped range counts from its first value",
        "15-45/10 * * * *",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": (
                "2026-01-01T00:15Z 2026-01-01T00:25Z 2026-01-01T00:35Z 2026-01-01T00:45Z 2026-01-01T01:15Z"
            ),
        },
    ),
    (
        "a step does not carry over the hour",
        "*/7 * * * *",
        "UTC",
        "2026-01-01T00:55:00Z",
        {
            "*": ("2026-01-01T00:56Z 2026-01-01T01:00Z 2026-01-01T01:07Z"),
        },
    ),
    (
        "a step of hours starts anew at midnight",
        "0 */5 * * *",
        "UTC",
        "2026-01-01T19:00:00Z",
        {
            "*": ("2026-01-01T20:00Z 2026-01-02T00:00Z 2026-01-02T05:00Z"),
        },
    ),
    (
        "leading zeros are decimal",
        "08 09 * * *",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": ("2026-01-01T09:08Z"),
        },
    ),
    (
        "tabs and runs of blanks separate fields",
        "0\t 12  *   * *",
        "UTC",
        "2026-01-01T00:00:00Z",
        {
            "*": ("2026-01-01T12:00Z"),
        },
    ),
)

"""Where the next page of an ordered list starts, said so that an index finds it.

The plain form, `column > at OR (column = at AND id > row_id)`, makes a database read the list from its start,
or join two searches. Here the first term is a range of the index, and the second only drops what was seen of
the same instant.
"""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, and_, or_

from orbit_sdk.values.ids import Id

Place = tuple[int, Id]
"""The last row seen: what the list is ordered by, and the id."""


def beyond(column: Column[int], id_column: Column[str], place: Place) -> ColumnElement[bool]:
    """Rows after the place in a list ordered by (column, id)."""
    at, row_id = place
    return and_(column >= at, or_(column > at, id_column > row_id))


def below(column: Column[int], id_column: Column[str], place: Place) -> ColumnElement[bool]:
    """Rows after the place in a list ordered by (column, id), both descending."""
    at, row_id = place
    return and_(column <= at, or_(column < at, id_column < row_id))

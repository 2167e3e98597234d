"""What a workflow may cost at most: attempts, calls and rounds per handler, time, and how soon a person is
needed when a handler is out of order.
"""

from orbit_sdk.check.budget.agreed import BUDGET_CODES, check_budget, parse_agreed
from orbit_sdk.check.budget.figures import Budget, HandlerBudget, budget_of

__all__ = ["BUDGET_CODES", "Budget", "HandlerBudget", "budget_of", "check_budget", "parse_agreed"]

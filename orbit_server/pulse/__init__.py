"""Durable tasks: lifecycle, dispatch, queues, subscriptions."""

"""Plans and fires: what starts tasks and workflows by calendar."""

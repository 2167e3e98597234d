"""What finds the work of Weave from rows: inbox, due steps, checkpoints. The loops call these."""

"""What an operator may say about workers: builds that get nothing any more."""

"""What a person must settle: review items and their resolution."""

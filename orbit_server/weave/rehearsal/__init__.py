"""What would follow: commands decided on a book that is rolled back."""

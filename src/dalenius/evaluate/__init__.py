"""How useful a release is: questions with known answers, and how far off a release's answers are."""

"""What people are shown: analyses, plots, sentences, and pages for the browser."""

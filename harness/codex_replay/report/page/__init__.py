"""Write a report as one HTML page."""

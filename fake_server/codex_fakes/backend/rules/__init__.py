"""What a request to the backend must satisfy."""

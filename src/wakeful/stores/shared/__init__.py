"""What the hot paths of both databases share."""

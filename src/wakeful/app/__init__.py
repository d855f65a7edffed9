"""What an app is made of: its lifecycle, its configuration, and the composition root."""

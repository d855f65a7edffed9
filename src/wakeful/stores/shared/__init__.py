"""What both databases share: the transaction, and tables that are not described beside their rules (`ports.table`)."""

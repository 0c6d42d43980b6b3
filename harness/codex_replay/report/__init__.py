"""What a run leaves behind: its data, and the pages made of it. Nothing here knows how a test is run."""

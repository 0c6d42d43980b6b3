"""The results of a run: its data, and the pages made from it. No module here depends on how tests run."""

"""The queues that take part: this project and its peers."""

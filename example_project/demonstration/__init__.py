"""What ``example_project.demo`` is made of: a workspace, services, orders, a disaster, and a verdict."""

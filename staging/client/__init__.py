"""Programs of ours that go through HTTP like anybody else."""

"""The MCP door: what an agent's model may call. It knows the API by HTTP only, like anybody else."""

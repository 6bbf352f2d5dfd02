"""The page "my AI todos" and the operators' queue view: a server-rendered shell, plain scripts, no build step."""

"""What runs inside a sandbox: its first process, and what that needs. Standard library only, nothing else of Sortie."""

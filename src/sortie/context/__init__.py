"""The handle every tool and reward gets, and the tokens an agent may still use."""

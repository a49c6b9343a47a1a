"""A calculator that never evaluates code."""

from __future__ import annotations

import ast
import operator
import re
from fractions import Fraction

from sortie.agents.tool import tool
from sortie.core.errors import ToolError

LONGEST = 64
"""Characters of one expression. With + - * / alone this also bounds the size of every number."""

DECIMALS = 6

_ALLOWED = re.compile(r"[0-9.+\-*/() ]+")
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@tool(inline=True)
def calculator(expression: str) -> str:
    """Evaluate arithmetic."""
    return evaluate(expression)


def evaluate(expression: str) -> str:
    """Exact value of numbers under + - * / and brackets, rounded to 6 decimals.

    Raises: ToolError telling the model what to write instead.
    """
    text = expression.strip()
    if len(text) > LONGEST:
        raise ToolError(f"the expression is longer than {LONGEST} characters; split it into several calls")
    if not _ALLOWED.fullmatch(text):
        raise ToolError("write numbers, + - * / and brackets only")
    try:
        return _spelled(_value(ast.parse(text, mode="eval").body, text))
    except SyntaxError:
        raise ToolError(f"{text} is not a complete expression") from None
    except ZeroDivisionError:
        raise ToolError("division by zero") from None


def _value(node: ast.expr, text: str) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()):
            return Fraction(ast.get_source_segment(text, node) or "")  # the digits as written: 0.1 is a tenth
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, text)
        case ast.UnaryOp(op=ast.UAdd()):
            return _value(node.operand, text)
        case ast.BinOp() if type(node.op) in _OPERATORS:
            result: Fraction = _OPERATORS[type(node.op)](_value(node.left, text), _value(node.right, text))
            return result
    raise ToolError("write numbers, + - * / and brackets only")


def _spelled(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    scaled = round(value * 10**DECIMALS)
    whole, part = divmod(abs(scaled), 10**DECIMALS)
    return f"{'-' if scaled < 0 else ''}{whole}.{part:0{DECIMALS}d}".rstrip("0").rstrip(".")

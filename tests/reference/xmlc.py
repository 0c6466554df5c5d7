"""A slow, obvious reader of XMLC text, for comparison with the native one."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LARGEST_FLOAT = Fraction(float(np.finfo(np.float32).max))
LARGEST_SIZE = 2**31 - 1


class RefusedError(Exception):
    def __init__(self, line):
        super().__init__(f"line {line}")
        self.line = line


def nearest_float32(text):
    """Round the written number to float32 by exact fractions, ties to even; None if it is too large."""
    number = Decimal(text)
    sign = np.float32(-1 if number.is_signed() else 1)
    if number.is_zero() or number.adjusted() < -60:
        return sign * np.float32(0)
    exact = abs(Fraction(number)) if number.adjusted() < 60 else LARGEST_FLOAT * 2
    half_step = LARGEST_FLOAT * Fraction(1, 2**25 - 2)
    if exact >= LARGEST_FLOAT + half_step:
        return None
    guess = np.float32(min(float(exact), float(LARGEST_FLOAT)))
    bits = int(guess.view(np.int32))
    near = [np.int32(i).view(np.float32) for i in (bits - 1, bits, bits + 1) if i >= 0]
    near = [value for value in near if np.isfinite(value)]
    best = min(near, key=lambda value: (abs(Fraction(float(value)) - exact), int(value.view(np.int32)) % 2))
    return sign * best


def parse(content, labelled=True):
    """Return (shape, list of {feature: value}, list of label sets), or raise RefusedError with the line."""
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    lines = [line.removesuffix(b"\r") for line in lines]
    sizes = lines[0].replace(b"\t", b" ").split(b" ") if lines else []
    sizes = [size for size in sizes if size]
    if len(sizes) != (3 if labelled else 2) or not all(size.isdigit() for size in sizes):
        raise RefusedError(1)
    shape = tuple(int(size) for size in sizes)
    if max(shape) > LARGEST_SIZE:
        raise RefusedError(1)
    n_rows = shape[0]
    features, labels = [], []
    for number, line in enumerate(lines[1:], start=2):
        if len(features) < n_rows:
            row_features, row_labels = parse_row(line, number, shape, labelled)
            features.append(row_features)
            labels.append(row_labels)
        elif line.strip(b" \t"):
            raise RefusedError(number)
    if len(features) < n_rows:
        raise RefusedError(len(lines))
    return shape, features, labels


def parse_row(line, number, shape, labelled):
    tokens = [token for token in re.split(rb"[ \t]", line) if token]
    labels = set()
    if labelled and tokens and line.startswith(tokens[0]) and b":" not in tokens[0]:
        for label in tokens.pop(0).split(b","):
            if not label.isdigit() or int(label) >= shape[2]:
                raise RefusedError(number)
            labels.add(int(label))
    values = {}
    for token in tokens:
        feature, _, value = token.partition(b":")
        if not feature.isdigit() or int(feature) >= shape[1] or not NUMBER.fullmatch(value):
            raise RefusedError(number)
        value = nearest_float32(value.decode())
        if value is None:
            raise RefusedError(number)
        values.setdefault(int(feature), []).append(value)
    with np.errstate(over="ignore"):
        summed = {feature: np.float32(sum_in_order(parts)) for feature, parts in values.items()}
    if not all(np.isfinite(value) for value in summed.values()):
        raise RefusedError(number)
    return summed, labels


def sum_in_order(parts):
    total = np.float64(parts[0])
    for part in parts[1:]:
        total += np.float64(part)
    return total

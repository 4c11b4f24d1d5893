"""What ONNX Runtime computes otherwise than Tenon though Tenon isn't wrong, each with the reason; and what can't be compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# Operators whose results no other implementation gives: they draw numbers.
NOT_COMPARED = "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial".split()


def is_no_flag(model: Any, attribute: str) -> bool:
    """Whether an attribute that should be 0 or 1 has another value."""
    return re.search(rf"{attribute}: int = (-\d|[2-9]|1\d)", model.text) is not None


# (operator, condition on the model's text and the difference, reason)
Condition = Callable[[Any, str], bool]
KNOWN: list[tuple[str, Condition, str]] = [
    (
        "Dropout",  # with an operand for training_mode
        lambda model, difference: re.search(r"Dropout[^\n]*\([^)]*,[^)]*,[^)]*\)", model.text) is not None,
        "in training, each implementation draws its own numbers",
    ),
    (
        "Reduce.*|Arg.*",
        lambda model, difference: is_no_flag(model, "keepdims"),
        "keepdims is 0 or 1; ONNX Runtime takes only 1 for true",
    ),
    (
        "GatherND",
        lambda model, difference: "batch axis" in difference and "must be equal" in difference,
        "ONNX requires equal batch axes; ONNX Runtime doesn't check them",
    ),
    (
        "Compress",
        lambda model, difference: "is greater than" in difference or "size of 'condition'" in difference,
        "the condition may be shorter than the axis; ONNX Runtime ignores what is beyond it",
    ),
    (
        "TreeEnsembleClassifier",
        lambda model, difference: "class_ids: ints = [0, 1]" in model.text and ": np.int64" in difference,
        "of two classes that both have weights, ONNX Runtime returns a label that hasn't the greatest score",
    ),
    (
        "LpPool|TfIdfVectorizer",
        lambda model, difference: "breaks ONNX's rules" in difference,
        "an attribute is missing or isn't positive; ONNX Runtime doesn't check it",
    ),
    (
        "OneHotEncoder",
        lambda model, difference: "'text_find': operand 'x'" in difference,
        "categories that are strings need operands that are strings",
    ),
    (
        "DynamicQuantizeLinear",
        lambda model, difference: "expected np.float32(1.0)" in difference,
        "ONNX's formula gives a scale of 0 where all elements are 0; ONNX Runtime replaces it by 1",
    ),
    (
        "ReverseSequence",
        lambda model, difference: "'batch_axis' and 'time_axis' are both" in difference,
        "the axes must be 0 and 1; ONNX Runtime takes -1 for another axis than 1 is",
    ),
    (
        "Reduce.*",
        lambda model, difference: is_no_flag(model, "noop_with_empty_axes") or " twice" in difference,
        "noop_with_empty_axes is 0 or 1, and an axis is given once; ONNX Runtime checks neither",
    ),
    (
        "AveragePool|MaxPool|LpPool",
        lambda model, difference: "auto_pad" in model.text and "SAME" in model.text and "dilations" in model.text,
        "with SAME_UPPER and SAME_LOWER the size is that of the input divided by the stride; ONNX Runtime leaves dilations out",
    ),
    (
        "TreeEnsemble",
        lambda model, difference: "post_transform: int = 1" in model.text,
        "1 is SOFTMAX in ONNX's text; ONNX Runtime computes the logistic function",
    ),
    (
        "MeanVarianceNormalization",
        lambda model, difference: "expected np.float32(nan)" in difference,
        "ONNX adds 1e-9 to the deviation; ONNX Runtime divides 0 by 0",
    ),
    (
        "SoftmaxCrossEntropyLoss|NegativeLogLikelihoodLoss",
        lambda model, difference: "np.float32(nan), expected np.float32(0.0)" in difference,
        "the mean of no elements is 0 / 0; ONNX Runtime gives 0",
    ),
    (
        "Unique",
        lambda model, difference: is_no_flag(model, "sorted"),
        "sorted is 0 or 1",
    ),
    (
        "StringSplit",
        lambda model, difference: "maxsplit" in model.text,
        "the rest of a string keeps the blanks at its end, as in Python and in ONNX's reference",
    ),
    (
        "OneHotEncoder",
        lambda model, difference: "operand 'x' is string" in difference,
        "categories that are integers need operands that are numbers",
    ),
    (
        "LinearClassifier",
        lambda model, difference: "does not match what the program expects" in difference,
        "the coefficients fit another number of features; ONNX Runtime doesn't check it for empty batches",
    ),
]


def is_compared(key: tuple[str, str]) -> bool:
    return key[1] not in NOT_COMPARED


def factor_of(model: Any) -> float:
    """How much less exact a result may be than its type's tolerance."""
    return 10.0 if len(model.operators) > 1 else 1.0


def reason_of(model: Any, difference: str) -> str:
    """Why it differs, or an empty text if that isn't known."""
    names = {name for _, name, _ in model.operators}
    for name, condition, reason in KNOWN:
        if any(re.fullmatch(name, n) for n in names) and condition(model, difference):
            return reason
    return ""

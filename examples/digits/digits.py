"""The demo in Python: compiles digits.onnx and classifies handwritten digits.

    python digits.py            (needs tenon and NumPy)

The same steps as digits.c: images with their predicted digits, the accuracy beside the training framework's, one
program for every batch size, latency, and three errors, after which the same machine still works."""

import pathlib
import sys
import tempfile

import numpy as np

import tenon

HERE = pathlib.Path(__file__).resolve().parent
SHADES = ("  ", "░░", "▒▒", "▓▓", "██")
PER_ROW = 5


def title(text: str) -> None:
    print(f"\n== {text}")


def show_images(images: np.ndarray, labels: np.ndarray, probabilities: np.ndarray, chosen: list[int]) -> None:
    """Prints images side by side, two characters per pixel, with the predicted digit below each."""
    for y in range(8):
        rows = ("".join(SHADES[round(pixel / 4)] for pixel in images[i, 0, y]) for i in chosen)
        print("  " + "   ".join(rows))
    captions = []
    for i in chosen:
        digit = probabilities[i].argmax()
        share = f"({probabilities[i, digit]:.0%})"
        captions.append(f"{digit}  {share}" if digit == labels[i] else f"{digit}, is {labels[i]} {share}")
    print("  " + "   ".join(caption.ljust(16) for caption in captions) + "\n")


def expect_error(what: str, kind: type[tenon.Error], call) -> None:
    try:
        call()
    except kind as error:
        print(f"-- {what}\n{error}\n")
    else:
        sys.exit(f"digits.py: no error for {what}")


def main() -> None:
    images = np.load(HERE / "images.npy")
    labels = np.load(HERE / "labels.npy")
    stored = np.load(HERE / "probabilities.npy")

    title("Compile digits.onnx")
    exe = tenon.compile(HERE / "digits.onnx", libraries="none")
    print(f"  {exe.signature()}\n  {len(exe.to_bytes())} bytes")
    vm = tenon.VirtualMachine(exe)
    probabilities = np.asarray(vm["main"](images))

    title("Images that it never saw, and the digits that it predicts\n")
    right = probabilities.argmax(axis=1) == labels
    for row in range(2):
        chosen = [(row * PER_ROW + i) * 37 % len(images) for i in range(PER_ROW)]
        show_images(images, labels, probabilities, chosen)
    print("  and some that it gets wrong:\n")
    show_images(images, labels, probabilities, list(np.flatnonzero(~right)[:PER_ROW]))

    title(f"Accuracy on {len(images)} held-out images")
    framework = stored.argmax(axis=1) == labels
    difference = np.abs(probabilities - stored).max()
    print(f"  Tenon               {right.sum()} right  {right.mean():.2%}")
    print(f"  training framework  {framework.sum()} right  {framework.mean():.2%}")
    print(f"  greatest difference from its stored outputs: {difference:.2g}")
    if not difference < 1e-4:
        sys.exit("digits.py: the answers differ from the stored ones")

    title("One program, every batch size")
    for batch in 1, 7, len(images):
        parts = [np.asarray(vm["main"](images[at : at + batch])) for at in range(0, len(images), batch)]
        same = np.concatenate(parts).argmax(axis=1) == probabilities.argmax(axis=1)
        print(f"  batch {batch:<3}  {same.sum()} of {len(images)} digits the same")
        if not same.all():
            sys.exit("digits.py: batch sizes disagree")

    title("Latency (of a tiny network: 34,000 weights)")
    for batch in 1, 7:
        times = vm.time_evaluator("main", number=100, repeat=20)(images[:batch])
        print(f"  batch {batch:<3}  median {times.median * 1e6:7.1f} us   best {times.min * 1e6:7.1f} us")

    title("Errors\n")
    with tempfile.TemporaryDirectory() as folder:
        damaged = bytearray(exe.to_bytes())
        damaged[-len(damaged) // 8] ^= 0x10
        path = pathlib.Path(folder, "digits.tnx")
        path.write_bytes(damaged)
        expect_error("one bit of the file flipped", tenon.DamagedError, lambda: tenon.load(path))
    expect_error("images of 7 rows", tenon.UsageError, lambda: vm["main"](images[:1, :, :7]))
    starved = tenon.VirtualMachine(exe, limits=tenon.Limits(fuel=0))
    expect_error("no fuel", tenon.ExecutionError, lambda: starved["main"](images[:1]))

    if not np.array_equal(vm["main"](images), probabilities):
        sys.exit("digits.py: the machine answers differently now")
    print(f"== The same machine still works: all {len(images)} results as before")


if __name__ == "__main__":
    main()

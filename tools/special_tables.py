# SPDX-License-Identifier: Apache-2.0
"""Writes lower/special_tables.h: Chebyshev expansions of special functions, computed with mpmath.

Run from the root of the repository after changing a fit: python tools/special_tables.py
"""

from collections.abc import Callable
from pathlib import Path

import mpmath as mp

mp.mp.dps = 40
Function = Callable[[mp.mpf], mp.mpf]


def chebyshev(f: Function, low: float, high: float, points: int = 64) -> list[mp.mpf]:
    """Coefficients of T0, T1, ... over [low, high], cut where f64 cannot see them."""
    mid, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    angles = [mp.pi * (k + mp.mpf(1) / 2) / points for k in range(points)]
    values = [f(mid + half * mp.cos(a)) for a in angles]
    c = [
        2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / points
        for j in range(points)
    ]
    c[0] /= 2
    cut = max(abs(v) for v in c) * mp.mpf(10) ** -17
    while abs(c[-1]) < cut:
        c.pop()
    return c


def hankel(order: int, part: str) -> Function:
    """P and Q of the large-argument form of J and Y, over s = (8 / x)^2; Q times x / 8."""

    def f(s: mp.mpf) -> mp.mpf:
        s = max(s, mp.mpf(10) ** -6)
        x = 8 / mp.sqrt(s)
        chi = x - (2 * order + 1) * mp.pi / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        scale = mp.sqrt(mp.pi * x / 2)
        if part == "p":
            return scale * (j * mp.cos(chi) + y * mp.sin(chi))
        return scale * (y * mp.cos(chi) - j * mp.sin(chi)) * x / 8

    return f


def large(f: Function, sign: int) -> Function:
    """exp(-+x) sqrt(x) f(x) over s = 1 / x."""

    def g(s: mp.mpf) -> mp.mpf:
        x = 1 / max(s, mp.mpf(10) ** -6)
        return mp.exp(sign * x) * mp.sqrt(x) * f(x)

    return g


def y0_rest(s: mp.mpf) -> mp.mpf:
    x = mp.sqrt(s)
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)


def y1_rest(s: mp.mpf) -> mp.mpf:
    x = mp.sqrt(s)
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def k0_rest(s: mp.mpf) -> mp.mpf:
    x = mp.sqrt(s)
    return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)


def k1_rest(s: mp.mpf) -> mp.mpf:
    x = mp.sqrt(s)
    return x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x))


def airy_decay(s: mp.mpf) -> mp.mpf:
    """2 sqrt(pi) x^(1/4) exp(zeta) Ai(x) over s = 1 / zeta, zeta = 2/3 x^(3/2)."""
    zeta = 1 / max(s, mp.mpf(10) ** -5)
    x = (1.5 * zeta) ** (mp.mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * x ** mp.mpf(0.25) * mp.exp(zeta) * mp.airyai(x)


def airy_wave(part: str) -> Function:
    """Factors of sin and cos(zeta + pi/4) / zeta in sqrt(pi) (-x)^(1/4) Ai(x), over 1 / zeta^2."""

    def f(s: mp.mpf) -> mp.mpf:
        zeta = 1 / mp.sqrt(max(s, mp.mpf(10) ** -6))
        y = (1.5 * zeta) ** (mp.mpf(2) / 3)
        phase = zeta + mp.pi / 4
        scale = mp.sqrt(mp.pi) * y ** mp.mpf(0.25)
        a, b = scale * mp.airyai(-y), scale * mp.airybi(-y)
        # Bi has cos where Ai has sin, and + sin where Ai has - cos.
        if part == "sin":
            return a * mp.sin(phase) + b * mp.cos(phase)
        return -(a * mp.cos(phase) - b * mp.sin(phase)) * zeta

    return f


def erfcx(x: mp.mpf) -> mp.mpf:
    return mp.exp(x * x) * mp.erfc(x)


def erfcx_scaled(t: mp.mpf) -> mp.mpf:
    """(1 + 2 x) erfcx(x) over t = (x - 2) / (x + 2)."""
    x = 2 * (1 + t) / (1 - min(t, 1 - mp.mpf(10) ** -6))
    if x > 1e3:
        inverse = 1 / (2 * x * x)
        series = 1 - inverse + 3 * inverse**2 - 15 * inverse**3 + 105 * inverse**4
        return (1 + 2 * x) / (x * mp.sqrt(mp.pi)) * series
    return (1 + 2 * x) * erfcx(x)


def quantile(p: mp.mpf) -> mp.mpf:
    """The normal distribution's, by Newton's method on the logarithm for small p."""
    x = -mp.sqrt(-2 * mp.log(p)) if p < 0.2 else mp.sqrt(2) * (p - 0.5)
    for _ in range(100):
        cdf = mp.erfc(-x / mp.sqrt(2)) / 2
        density = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
        step = (mp.log(cdf) - mp.log(p)) * cdf / density
        x -= step
        if abs(step) < mp.mpf(10) ** -32:
            break
    return x


def quantile_middle(s: mp.mpf) -> mp.mpf:
    y = mp.sqrt(s)
    return quantile(0.5 + y) / y


def quantile_tail(s: mp.mpf) -> mp.mpf:
    """z - log(z) / z + quantile(exp(-z^2 / 2)) over s = 1 / z."""
    z = 1 / s
    return z - mp.log(z) / z + quantile(mp.exp(-z * z / 2))


def over(f: Function) -> Function:
    return lambda x: f(x) / x


TABLES = {
    "I0Small": (lambda x: mp.exp(-x) * mp.besseli(0, x), 0, 8),
    "I0Large": (large(lambda x: mp.besseli(0, x), -1), 0, 1 / 8),
    "I1Small": (over(lambda x: mp.exp(-x) * mp.besseli(1, x)), 0, 8),
    "I1Large": (large(lambda x: mp.besseli(1, x), -1), 0, 1 / 8),
    "K0Small": (k0_rest, 0, 4),
    "K0Large": (large(lambda x: mp.besselk(0, x), 1), 0, 1 / 2),
    "K1Small": (k1_rest, 0, 4),
    "K1Large": (large(lambda x: mp.besselk(1, x), 1), 0, 1 / 2),
    "J0Small": (lambda s: mp.besselj(0, mp.sqrt(s)), 0, 64),
    "J1Small": (lambda s: mp.besselj(1, mp.sqrt(s)) / mp.sqrt(s), 0, 64),
    "Y0Small": (y0_rest, 0, 64),
    "Y1Small": (y1_rest, 0, 64),
    "P0": (hankel(0, "p"), 0, 1),
    "Q0": (hankel(0, "q"), 0, 1),
    "P1": (hankel(1, "p"), 0, 1),
    "Q1": (hankel(1, "q"), 0, 1),
    "AiryMiddle": (lambda x: mp.airyai(x), -2, 2),
    "AiryDecay": (airy_decay, 0, 0.54),
    "AirySin": (airy_wave("sin"), 0, 0.29),
    "AiryCos": (airy_wave("cos"), 0, 0.29),
    "Erfcx": (erfcx_scaled, -1, 1),
    "QuantileMiddle": (quantile_middle, 0, 0.1406),
    "QuantileNear": (quantile_tail, 1 / 8, 1 / 1.98),
    "QuantileFar": (quantile_tail, 1 / 40, 1 / 8),
}

HEADER = """// SPDX-License-Identifier: Apache-2.0
// Chebyshev expansions of special functions: the interval and the coefficients of T0, T1, ...
// Generated by tools/special_tables.py, where each function is defined; do not edit.
#pragma once

#include <span>

namespace tpu::lower {

struct Expansion {
  double low;
  double high;
  std::span<const double> coefficients;
};

"""


def table(name: str, f: Function, low: float, high: float) -> str:
    c = chebyshev(f, low, high)
    numbers = ",\n    ".join(mp.nstr(v, 18, min_fixed=1, max_fixed=0) for v in c)
    return (
        f"inline constexpr double k{name}Terms[] = {{\n    {numbers}}};\n"
        f"inline constexpr Expansion k{name}{{{float(low)!r}, {float(high)!r}, k{name}Terms}};\n"
    )


def main() -> None:
    path = Path(__file__).parents[1] / "lower" / "special_tables.h"
    body = "\n".join(table(name, *fit) for name, fit in TABLES.items())
    path.write_text(HEADER + body + "\n}  // namespace tpu::lower\n")


if __name__ == "__main__":
    main()

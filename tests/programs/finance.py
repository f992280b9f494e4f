import math

import numpy as np
from program import Array, Program

RATE, VOLATILITY = 0.02, 0.3


def calls(price: Array, strike: Array, years: Array) -> Array:
    normal = np.vectorize(lambda x: (1 + math.erf(x / math.sqrt(2))) / 2)
    spread = VOLATILITY * np.sqrt(years)
    d1 = (np.log(price / strike) + (RATE + VOLATILITY**2 / 2) * years) / spread
    return np.asarray(
        price * normal(d1) - strike * np.exp(-RATE * years) * normal(d1 - spread), np.float64
    )


def american_put(spot: float, strike: float, up: float, discount: float, chance: float) -> float:
    steps = 63
    powers = [up ** (2.0 * np.arange(step + 1) - step) for step in range(steps + 1)]
    worth = np.maximum(strike - spot * powers[steps], 0)
    for step in reversed(range(steps)):
        held = discount * (chance * worth[1:] + (1 - chance) * worth[:-1])
        worth = np.maximum(held, strike - spot * powers[step])
    return float(worth[0])


def run(program: Program) -> None:
    n = 300
    price, strike = 5 + 25 * program.floats(n), 1 + 99 * program.floats(n)
    years = 0.25 + 9.75 * program.floats(n)
    wide = [each.astype(np.float64) for each in (price, strike, years)]
    expected = calls(*wide)
    call, put = program.zeros(n, np.float32), program.zeros(n, np.float32)
    sent = [program.to_device(each) for each in (price, strike, years)]
    program.launch("black_scholes", 2, 128, call, put, *sent, RATE, VOLATILITY, n)
    program.close(call, expected)
    program.close(put, expected + wide[1] * np.exp(-RATE * wide[2]) - wide[0])

    out = program.zeros(n, np.float64)
    sent = [program.to_device(each) for each in wide]
    program.launch("black_scholes_erf", 3, 128, out, *sent, RATE, VOLATILITY, n)
    program.close(out, expected, 1e-13)

    spots = np.array([80.0, 100.0, 120.0])
    model = 100.0, 1.05, 0.999, 0.495
    puts = program.zeros(3, np.float64)
    sent_spots = program.to_device(spots)
    program.launch("american_put", 3, 64, puts, sent_spots, *model, 63, shared=64 * 8)
    program.close(puts, [american_put(spot, *model) for spot in spots], 1e-12)

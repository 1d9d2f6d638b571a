# Every Python program of the tests imports this at its start. What they import makes a million objects that stay, and looking through
# them for cycles after every 700 new ones takes a fifth of it.
import gc

gc.set_threshold(100_000, 50, 100)

import numpy as np
from program import Program

ROWS, COLUMNS = 150, 90


def run(program: Program) -> None:
    dense = program.floats((ROWS, COLUMNS)) * (program.floats((ROWS, COLUMNS)) < 0.2)
    dense[7] = 0
    x = program.floats(COLUMNS)
    expected = dense.astype(np.float64) @ x
    row, column = np.nonzero(dense)
    counts = np.bincount(row, minlength=ROWS)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    device_x, y = program.to_device(x), program.zeros(ROWS, np.float32)
    columns, values = column.astype(np.int32), dense[row, column]
    csr = [program.to_device(part) for part in (first, columns, values)]

    program.launch("csr_scalar", 3, 64, y, *csr, device_x, ROWS)
    program.close(y, expected)

    y.fill(0)
    program.launch("csr_vector", -(-ROWS // 4), 128, y, *csr, device_x, ROWS)
    program.close(y, expected)

    width = int(counts.max())
    place = np.arange(len(row)) - first[row]
    ell_columns = np.full((width, ROWS), -1, np.int32)
    ell_values = np.zeros((width, ROWS), np.float32)
    ell_columns[place, row], ell_values[place, row] = columns, values
    y.fill(0)
    sent = program.to_device(ell_columns), program.to_device(ell_values)
    program.launch("ellpack", 3, 64, y, *sent, device_x, ROWS, width)
    program.close(y, expected)

    y.fill(0)
    rows = program.to_device(row.astype(np.int32))
    program.launch("coordinates", 2, 96, y, rows, *csr[1:], device_x, len(row))
    program.close(y, expected)

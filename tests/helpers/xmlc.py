"""What the tests of the XMLC files share."""

import io

from longleaf.io.xmlc import load_xmlc

PLAIN = b"3 4 5\n1,2 0:1.5 3:2\n0:1\n4 1:-3e-2 2:.5"


def load_bytes(content, load=load_xmlc):
    return load(io.BytesIO(content))


def rows_of(matrix):
    return [
        dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in (matrix[i] for i in range(matrix.shape[0]))
    ]

"""Nothing of the extra is imported before it is used."""

import subprocess
import sys

from tests.helpers.encoders import EXTRA

CHECK = """
import sys
import longleaf as ll
ll.encoders.load(lambda texts: [[1.0]] * len(texts)).embed(["a"])
print(sorted(set(sys.argv[1:]) & set(sys.modules)))
"""


def test_longleaf_and_a_function_as_an_encoder_need_no_extra():
    command = [sys.executable, "-c", CHECK, *EXTRA, "huggingface_hub", "sentence_transformers", "torch"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

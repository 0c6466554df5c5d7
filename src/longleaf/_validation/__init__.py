"""Everything that a caller can get wrong is caught here.

`data` brings features and labels into one form; `sparse` checks the structure of sparse matrices before any
code walks along them, and `indicator` recognises label matrices that need no work, and looks labels up in
them. `numbers` checks settings; `errors` has what is raised for files.
"""

from longleaf._validation.data import LabelsLike as LabelsLike
from longleaf._validation.data import Rows as Rows
from longleaf._validation.data import check_features as check_features
from longleaf._validation.data import check_labels as check_labels
from longleaf._validation.data import check_per_label as check_per_label
from longleaf._validation.data import check_top as check_top
from longleaf._validation.data import is_label_lists as is_label_lists
from longleaf._validation.errors import DataError as DataError
from longleaf._validation.errors import ModelError as ModelError
from longleaf._validation.errors import ModelExistsError as ModelExistsError
from longleaf._validation.indicator import carries as carries
from longleaf._validation.numbers import MOST_LABELS as MOST_LABELS
from longleaf._validation.numbers import MOST_ROWS as MOST_ROWS
from longleaf._validation.numbers import MOST_THREADS as MOST_THREADS
from longleaf._validation.numbers import check_choice as check_choice
from longleaf._validation.numbers import check_count as check_count
from longleaf._validation.numbers import check_flag as check_flag
from longleaf._validation.numbers import check_number as check_number
from longleaf._validation.numbers import check_pair as check_pair
from longleaf._validation.numbers import check_path as check_path
from longleaf._validation.numbers import check_seed as check_seed
from longleaf._validation.numbers import check_threads as check_threads
from longleaf._validation.sparse import check_structure as check_structure

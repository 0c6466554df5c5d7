// Files: XMLC text in and out (xmlc.h), and working arrays that may be in files (scratch.h, huge.h).
//
// The parser takes text in pieces, so that a caller can stop between any two; it trusts nothing in the text and holds
// no more memory than what it has read takes. What is written reads back as the same bits.
#pragma once

#include "files/huge.h"
#include "files/scratch.h"
#include "files/xmlc.h"

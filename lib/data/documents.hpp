#pragma once
// Token files whose documents stay apart (data.documents = "apart"): a sample holds tokens of one document alone.
// Letters: T = sequence length, L = tokens of a document.
// A document has ceil((L - 1) / T) samples. Sample j has its tokens from jT on, and the same shifted by one as targets;
// where the document ends before the sample does, tokens are 0 and targets the value that losses ignore. In a model
// that looks backwards only, such places change nothing. A document of one token has no target, so no sample.
#include <cstdint>
#include <memory>
#include <vector>

#include "data/windows.hpp"

namespace vpp::detail {

struct DocumentFile {
    TokenFile tokens;
    InputFile index;
    std::vector<int64_t> begins;  ///< of the documents, in tokens, and the end of the last one
};

/// Fields tokens and targets, int64, [T].
/// Requires: sequence_length >= 1; at least one file; begins ascend from 0 to the file's number of tokens.
/// Throws:   Error{BadData} for a file without a document of two tokens.
std::unique_ptr<Dataset> make_documents(std::vector<DocumentFile> files, int64_t sequence_length,
                                        int64_t ignored_target);

}  // namespace vpp::detail

#pragma once
// Texts to tokens: bytes 0 to 255 as they are, or what a SentencePiece model makes of them (data/tokenizer.hpp), in a
// token file with the index of its documents, Megatron-LM's form (data/megatron_index.hpp). Both files appear whole or
// not at all.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vpp {

struct TokenOrder {
    std::string out;                        ///< ends with .bin; the index gets .idx
    std::vector<std::string> texts;         ///< files, a document each
    bool lines = false;                     ///< each line that is not empty is a document, without its end (\n or \r\n)
    std::optional<int64_t> end_token = {};  ///< put behind each document; 0 to 2147483647
    bool overwrite = false;
    std::string tokenizer = {};          ///< a SentencePiece model; empty: tokens are bytes
    std::string tokenizer_program = {};  ///< what works with it
};

struct TokensMade {
    int64_t num_tokens = 0, num_documents = 0;
    size_t token_bytes = 1;    ///< 2 and 4 where the vocabulary or the end token need them
    int64_t vocabulary = 256;  ///< of the tokenizer, and the end token
    /// The tokenizer's own for the end of a sentence.
    std::optional<int64_t> end_of_sentence = {};
};

/// A document without a token is left out.
/// Throws: Error{CommandLine} for an order that makes no sense, Error{Output} when a file is there already or cannot be
///         made, Error{MissingInput, BadData, Io} for the texts and the tokenizer.
TokensMade make_token_file(const TokenOrder& order);

}  // namespace vpp

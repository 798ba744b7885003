#pragma once
// A SentencePiece model at work: texts to tokens. It works in a child process that runs a program of its own
// (app/tokenizer.cpp): LibTorch and SentencePiece each bring a protobuf, and a model file may be broken or hostile.
// What it breaks is the child, which can neither write files nor take all memory.
//
// The talk, on one socket that is the child's input and output, numbers as this machine writes them:
//   a message   uint64 number of bytes, the bytes: first the model file, then a document each
//   an answer   int64 n and n int32: first size of the vocabulary and its end of sentence, -1 for none; then tokens
//   or          int64 -n and n bytes that say what is wrong with the message, which is the last
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace vpp {

/// What the child may use.
struct TokenizerLimits {
    std::chrono::seconds silence{100};          ///< how long an answer may keep one waiting
    uint64_t memory_bytes = uint64_t{4} << 30;  ///< of address space
};

class Tokenizer {
  public:
    /// The longest document: the child holds some 150 bytes for each of its bytes.
    static constexpr uint64_t kMostDocumentBytes = uint64_t{16} << 20;

    /// Starts `program` and gives it the model.
    /// Throws: Error{MissingInput, Io} for the files, Error{BadData} naming the model when it is none or breaks the
    /// child.
    Tokenizer(const std::string& model, const std::string& program, const TokenizerLimits& limits = {});
    ~Tokenizer();
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;

    /// Tokens are 0 to vocabulary() - 1.
    int64_t vocabulary() const { return vocabulary_; }
    /// The token that the model itself has for the end of a sentence.
    std::optional<int64_t> end_token() const { return end_token_; }

    /// `source` is the text that the document is of.
    /// Requires: at most kMostDocumentBytes; no error was thrown before.
    /// Throws:   Error{BadData} naming the text, or the model where its answer cannot be.
    std::vector<int32_t> encode(std::span<const std::byte> document, const std::string& source);

  private:
    void start(const std::string& program);
    void send(std::span<const std::byte> bytes);
    void receive(std::span<std::byte> bytes);
    std::vector<int32_t> ask(std::span<const std::byte> message);
    [[noreturn]] void fail(const std::string& what);
    [[noreturn]] void fail_model(const std::string& what);
    [[noreturn]] void fail_silent(bool timed_out);
    int wait();

    std::string model_;
    std::string source_;  ///< the text that is being encoded; empty while the model is loaded
    TokenizerLimits limits_;
    pid_t pid_ = -1;
    int socket_ = -1;
    int64_t vocabulary_ = 0;
    std::optional<int64_t> end_token_;
};

}  // namespace vpp

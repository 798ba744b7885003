#include "data/token_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <span>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/new_file.hpp"
#include "data/foreign_file.hpp"
#include "data/tokenizer.hpp"

namespace vpp {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kLargestToken = std::numeric_limits<int32_t>::max();
constexpr std::byte kReturn{'\r'};

/// A whole number of so many values, and how Megatron-LM calls its type.
struct TokenType {
    size_t bytes;
    char code;
};

TokenType type_for(int64_t vocabulary) {
    if (vocabulary <= 1 << 8) return {1, 1};   // uint8
    if (vocabulary <= 1 << 16) return {2, 8};  // uint16
    return {4, 4};                             // int32
}

class TokenFileWriter {
  public:
    TokenFileWriter(const TokenOrder& order, Tokenizer* tokenizer, const fs::path& path)
        : order_(order),
          tokenizer_(tokenizer),
          file_(path),
          vocabulary_(std::max(tokenizer ? tokenizer->vocabulary() : 256, order.end_token.value_or(0) + 1)),
          type_(type_for(vocabulary_)) {}

    void add_text(const std::string& path) {
        refuse_folder(path);
        const InputFile text(path);
        refuse_foreign_file(text);
        if (text.size_bytes() == 0) throw Error(ErrorKind::BadData, path + ": the file is empty");
        constexpr uint64_t kPiece = uint64_t{1} << 20;
        Bytes piece;
        for (uint64_t at = 0; at < text.size_bytes(); at += piece.size()) {
            piece.resize(static_cast<size_t>(std::min(kPiece, text.size_bytes() - at)));
            text.read(at, piece);
            add_bytes(piece, path);
        }
        if (held_return_) add_byte(kReturn);
        held_return_ = false;
        end_document(path);
    }

    void finish() {
        flush();
        file_.finish();
        if (!lengths_.empty()) return;
        throw Error(ErrorKind::BadData, tokenizer_ ? "the tokenizer makes no token of the texts"
                                                   : "the texts have no line that is not empty");
    }

    /// Source: Megatron-LM, megatron/core/datasets/indexed_dataset.py.
    void write_index(const fs::path& path) const {
        OutputFile index(path);
        std::vector<int64_t> begins, borders = {0};
        int64_t end = 0;
        for (const int32_t length : lengths_) {
            begins.push_back(end * static_cast<int64_t>(type_.bytes));
            end += length;
            borders.push_back(static_cast<int64_t>(begins.size()));
        }
        index.write_text(std::string("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17) + type_.code);
        const uint64_t counts[] = {lengths_.size(), borders.size()};
        index.write(std::as_bytes(std::span(counts)));
        index.write(std::as_bytes(std::span(lengths_)));
        index.write(std::as_bytes(std::span(begins)));
        index.write(std::as_bytes(std::span(borders)));
        index.finish();
    }

    TokensMade made() const { return {num_tokens_, static_cast<int64_t>(lengths_.size()), type_.bytes, vocabulary_}; }

  private:
    void add_bytes(std::span<const std::byte> bytes, const std::string& path) {
        for (const std::byte byte : bytes) order_.lines ? add_byte_of_lines(byte, path) : add_byte(byte);
        check_length(path);  // after each piece, so that a long document is not held whole
    }

    void check_length(const std::string& path) const {
        if (document_.size() > Tokenizer::kMostDocumentBytes) {
            throw Error(ErrorKind::BadData, path + ": a tokenizer takes documents of up to 16 MiB, and one here is " +
                                                "longer; cut the file, or take each line as a document with --lines");
        }
    }

    /// A line ends with \n or \r\n, so a \r waits for what comes behind it.
    void add_byte_of_lines(std::byte byte, const std::string& path) {
        const bool ends = byte == std::byte{'\n'};
        if (held_return_ && !ends) add_byte(kReturn);
        held_return_ = byte == kReturn;
        if (ends) return end_document(path);
        if (!held_return_) add_byte(byte);
    }

    void add_byte(std::byte byte) {
        tokenizer_ ? document_.push_back(byte) : add_token(std::to_integer<int64_t>(byte));
    }

    void add_token(int64_t token) {
        for (size_t i = 0; i < type_.bytes; ++i) pending_.push_back(static_cast<std::byte>(token >> (8 * i)));
        ++length_;
        if (pending_.size() >= 1 << 20) flush();
    }

    void end_document(const std::string& path) {
        if (tokenizer_ && !document_.empty()) {
            check_length(path);
            for (const int32_t token : tokenizer_->encode(document_, path)) add_token(token);
            document_.clear();
        }
        if (length_ == 0) return;
        if (order_.end_token) add_token(*order_.end_token);
        if (length_ > std::numeric_limits<int32_t>::max()) {
            throw Error(ErrorKind::BadData, path + ": a document has " + std::to_string(length_) +
                                                " tokens, and the index holds lengths up to 2147483647; cut the file, "
                                                "or take each line as a document with --lines");
        }
        lengths_.push_back(static_cast<int32_t>(length_));
        num_tokens_ += length_;
        length_ = 0;
    }

    void flush() {
        file_.write(pending_);
        pending_.clear();
    }

    const TokenOrder& order_;
    Tokenizer* tokenizer_;  ///< null: tokens are bytes
    OutputFile file_;
    int64_t vocabulary_;
    TokenType type_;
    Bytes pending_;
    Bytes document_;            ///< what the tokenizer gets next
    bool held_return_ = false;  ///< of lines: a \r came last, and is not added yet
    int64_t length_ = 0, num_tokens_ = 0;
    std::vector<int32_t> lengths_;
};

}  // namespace

TokensMade make_token_file(const TokenOrder& order) {
    if (fs::path(order.out).extension() != ".bin") {  // ".bin" alone is a name without an extension
        throw Error(ErrorKind::CommandLine,
                    "tokens are written to FILE.bin and FILE.idx (got " + printable(order.out) + ")");
    }
    if (order.end_token && (*order.end_token < 0 || *order.end_token > kLargestToken)) {
        throw Error(ErrorKind::CommandLine, "an end token is a number from 0 to " + std::to_string(kLargestToken) +
                                                " (got " + std::to_string(*order.end_token) + ")");
    }
    std::optional<Tokenizer> tokenizer;
    if (!order.tokenizer.empty()) tokenizer.emplace(order.tokenizer, order.tokenizer_program);
    NewFile tokens(order.out, order.overwrite), index(fs::path(order.out).replace_extension(".idx"), order.overwrite);
    TokenFileWriter writer(order, tokenizer ? &*tokenizer : nullptr, tokens.temporary());
    for (const std::string& text : order.texts) writer.add_text(text);
    writer.finish();
    writer.write_index(index.temporary());
    // In this order no tokens ever lie beside the index of others.
    tokens.remove_old();
    index.publish();
    tokens.publish();
    TokensMade made = writer.made();
    if (tokenizer) made.end_of_sentence = tokenizer->end_token();
    return made;
}

}  // namespace vpp

"""The Cursus dialect: length-framed text commands and 0xBA7C batches."""

// SPDX-License-Identifier: Apache-2.0
// The worker of pdf.ts.
import 'pdfjs-dist/legacy/build/pdf.worker.mjs';

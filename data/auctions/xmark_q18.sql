-- The reserves of the open auctions, in another currency.
-- XMark, Query 18, as SQL over the streams of the document.
-- Nothing is kept. Every id is unique (open_auction.id), the end of the open auctions closes the rest.
-- Verdict, followed: answers at once, keeps nothing.

CREATE TABLE open_auction USING xmark OPTIONS (path '${XMARK}', stream 'open_auction');

SELECT id, 2.20371 * reserve AS reserve FROM open_auction WHERE reserve IS NOT NULL;

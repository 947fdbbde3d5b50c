-- The average of the prices at which auctions closed, in each category: bids count that were made before their auction
-- expired.
-- NEXMark, Query 4, after its original of 2002, which asks of closed auctions; expired ones are those that time has passed.
-- Unique ids (auction.id) bound the bids and close the auctions' groups; time (bid.dateTime) or closed auctions
-- (bid.auction) bound the auctions. Nothing closes a category before the end: five averages are kept until then.
-- Verdict, followed: refused, group_by-2 never answers, since nothing closes category of auction.

CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP,
  expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/auction.xml', rowTag 'auction',
  schemes 'id; seller; dateTime prefix', maxBytesPerSlice '55m');

CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING
) USING punctuated_xml
OPTIONS (path '${AUCTIONS}/bid.xml', rowTag 'bid',
  schemes 'auction; bidder; dateTime prefix', maxBytesPerSlice '320m');

SELECT category, AVG(final) AS final
FROM (
  SELECT A.id, A.category, MAX(B.price) AS final
  FROM auction A JOIN bid B ON A.id = B.auction AND B.dateTime < A.expires
  GROUP BY A.id, A.category
)
GROUP BY category;
